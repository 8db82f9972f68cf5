// Programs with one mistake: a copy of a good file in which one piece of text is replaced.
#pragma once
#include <string>
#include <string_view>

namespace tenon {

/// Writes a copy of the archive in which `from` has become `to` in the entry (named without the root folder; once, and
/// it must be there). Where `from` is empty the entry's whole content is `to`; "-" as `to` leaves the entry out.
/// Returns the path.
std::string edited(const std::string& file, std::string_view entry, std::string_view from, std::string_view to);
/// The same for models/model.json.
std::string edited_json(const std::string& file, std::string_view from, std::string_view to);

/// A path for a file that a test writes.
std::string scratch_path(const std::string& name);

/// What the loader says of a file; empty where it accepts it.
std::string load_error(const std::string& file);

/// A small program with a dynamic batch, which most mistakes are made in.
const std::string& mlp();
/// What the loader says of it with one replacement in models/model.json.
std::string json_error(std::string_view from, std::string_view to);

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << "says: " << (message)

}  // namespace tenon
