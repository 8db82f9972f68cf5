#include "tenon/export/serde/archive.h"

#include <charconv>

namespace tenon::serde {
namespace {

// The first format: a flat zip whose entry `version` holds the schema version.
std::string_view flat_writer(std::string_view version) {
  if (starts_with(version, "5.")) return "2.4";
  if (starts_with(version, "7.")) return "2.5";
  if (version == "8.2") return "2.6";
  if (version == "8.7") return "2.7";
  return "2.7 or earlier";
}

constexpr std::string_view export_again =
    "; Tenon reads files of PyTorch 2.9 and later: export the model again with one of them";

}  // namespace

std::shared_ptr<const Archive> Archive::open(const std::string& path) {
  auto file = MappedFile::open(path);
  require(looks_like_zip(file->bytes()), path,
          ": expected a .pt2 file written by torch.export.save, which is a zip archive; this ", "file is not one");
  auto budget = std::make_unique<Budget>(path, file->bytes().size());
  ZipArchive zip(file->bytes(), path, {.budget = budget.get()});
  std::shared_ptr<Archive> archive(new Archive(std::move(file), std::move(budget), std::move(zip)));
  archive->check_container();
  return archive;
}

void Archive::check_container() {
  require(!zip_.entries().empty(), path(), ": the archive is empty");
  if (zip_.find("serialized_exported_program.json")) {
    const ZipEntry* version = zip_.find("version");
    fail(path(), ": the file was written by PyTorch ", flat_writer(version ? trim(zip_.content(*version)) : ""),
         export_again);
  }
  std::string_view first = zip_.entries()[0].name;
  size_t slash = first.find('/');
  require(slash != std::string_view::npos, path(),
          ": expected a .pt2 file, all of whose entries lie in one folder; found ", quoted(first), " outside of any");
  root_ = first.substr(0, slash + 1);
  for (const ZipEntry& entry : zip_.entries())
    require(starts_with(entry.name, root_), path(), ": expected all entries in the folder ", quoted(root_), ", found ",
            quoted(entry.name));
  if (!find("archive_format")) {
    require(!find("data.pkl"), path(),
            ": this is a file written by torch.save; expected one written by torch.export.save");
    fail(path(), ": expected a .pt2 file written by torch.export.save; the entry archive_format is missing");
  }
  require(trim(content("archive_format")) == "pt2", path(), ": expected the archive format pt2, found ",
          quoted(content("archive_format")));
  require(trim(content("archive_version")) == "0", path(), ": expected archive version 0, found ",
          quoted(content("archive_version")), "; the file comes from a newer PyTorch than this Tenon knows");
  check_zip_version(trim(content(".data/version")));
  if (find("byteorder"))
    require(trim(content("byteorder")) == "little", path(),
            ": expected a file of a little-endian machine, found byte order ", quoted(content("byteorder")));
  std::vector<std::string> models = names_in("models/");
  std::erase_if(models, [](const std::string& name) { return !ends_with(name, ".json"); });
  if (find("models/model.json")) {
    model_ = "model";
  } else {
    require(!models.empty(), path(), ": the archive holds no exported program (models/model.json)",
            find("data/aotinductor") || !names_in("data/aotinductor/").empty()
                ? "; it is a package compiled by AOTInductor, which only PyTorch can run"
                : "");
    require(models.size() == 1, path(), ": expected models/model.json, found ", models.size(),
            " models of other names");
    model_ = models[0].substr(0, models[0].size() - 5);
  }
  if (find(text("data/weights/", model_, ".pt")) && !find(text("data/weights/", model_, "_weights_config.json")))
    fail(path(), ": the file was written by PyTorch 2.8", export_again);
}

void Archive::check_zip_version(std::string_view version) const {
  constexpr int64_t newest = 10;  // of the versions that PyTorch itself reads
  int64_t number = 0;
  auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  require(error == std::errc() && end == version.data() + version.size() && number >= 1, path(),
          ": expected a number in .data/version, found ", quoted(version));
  require(number <= newest, path(), ": expected a zip format version from 1 to ", newest, " in .data/version, found ",
          number, "; the file comes from a newer PyTorch than this Tenon knows");
}

const ZipEntry& Archive::at(std::string_view name) const {
  const ZipEntry* entry = find(name);
  require(entry, path(), ": the entry ", quoted(name), " is missing");
  return *entry;
}

JsonDocument Archive::json(std::string_view name) const {
  return JsonDocument(content(name), text(path(), ": ", name), {.budget = budget_.get()});
}

std::vector<std::string> Archive::names_in(std::string_view folder) const {
  std::vector<std::string> out;
  std::string prefix = root_ + std::string(folder);
  for (const ZipEntry& entry : zip_.entries())
    if (starts_with(entry.name, prefix)) out.emplace_back(entry.name.substr(prefix.size()));
  return out;
}

}  // namespace tenon::serde
