#include "tests/export/edited.h"

#include <gtest/gtest.h>

#include "tenon/base/file.h"
#include "tenon/export/serde/load.h"
#include "tenon/io/zip.h"
#include "tests/export/test_ops.h"

namespace tenon {

std::string scratch_path(const std::string& name) { return text(testing::TempDir(), "tenon_export_", name); }

std::string edited(const std::string& file, std::string_view entry, std::string_view from, std::string_view to) {
  std::string path = scratch_path("edited.pt2");
  std::string input = read_file(file);
  ZipArchive archive(std::as_bytes(std::span(input)), file);
  ZipWriter writer(path);
  bool done = false;
  for (const ZipEntry& e : archive.entries()) {
    std::string content(archive.content(e));
    if (e.name.substr(e.name.find('/') + 1) == entry) {
      done = true;
      if (to == "-") continue;
      size_t at = content.find(from);
      EXPECT_NE(at, content.npos) << from;
      if (from.empty()) content = to;
      else content.replace(at, from.size(), to);
    }
    writer.add(e.name, content);
  }
  EXPECT_TRUE(done) << entry;
  writer.commit();
  return path;
}

std::string edited_json(const std::string& file, std::string_view from, std::string_view to) {
  return edited(file, "models/model.json", from, to);
}

std::string load_error(const std::string& file) {
  try {
    load_exported(file, test_ops());
  } catch (const Error& error) {
    std::string message = error.what();
    EXPECT_NE(message.find(file), message.npos) << "names the file: " << message;
    return message;
  }
  return "";
}

const std::string& mlp() {
  static const std::string path = data_path("pt2/torch-2.15/a_mlp_dynamic.pt2");
  return path;
}

std::string json_error(std::string_view from, std::string_view to) { return load_error(edited_json(mlp(), from, to)); }

}  // namespace tenon
