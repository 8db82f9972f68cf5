// The message of the error that an action fails with; empty where it succeeds.
#pragma once
#include <string>

#include "tenon/base/error.h"

namespace tenon {

template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) { return error.what(); }
  return "";
}

}  // namespace tenon
