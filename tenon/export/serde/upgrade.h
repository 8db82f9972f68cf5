// Programs of older schemas in the words of the newest: a table of changes, each with the schema version that brought
// it.
#pragma once
#include <string>
#include <string_view>

#include "tenon/base/budget.h"
#include "tenon/io/json.h"

namespace tenon::serde {

/// The JSON of a program, in schema 8. Older text is read, changed version by version and read again; newer text is
/// left as it is. `flat` says that it comes from a flat archive, whose writers spelled infinities as Python does.
/// Refused: schemas older than 5 and newer than 8.
JsonDocument read_program_json(std::string_view text, const std::string& subject, bool flat, Budget& budget);

}  // namespace tenon::serde
