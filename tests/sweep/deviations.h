// Where a check of the sweep may fail, and why.
#pragma once
#include <span>
#include <string>

namespace tenon::sweep {

/// Where we differ and know why: PyTorch is wrong or leaves it open, or we refuse a call and say so. Each row is for
/// one operator; `call` is a part of the call's description, `message` of what went wrong.
struct Deviation {
  const char *op, *check, *call, *message, *why;
  bool of_complex = false;  // it is for those calls alone
};

/// Why an operator has no recordings; null where it should.
const char* why_unrecorded(const std::string& op);

/// Refused of complex numbers: such a call answers with an Error.
bool refused_of_complex(const std::string& op);

std::span<const Deviation> all_deviations();
const Deviation* deviation(const std::string& op, const std::string& check, const std::string& call,
                           const std::string& message);

}  // namespace tenon::sweep
