#include "tenon/export/serde/archive.h"

#include <algorithm>
#include <charconv>

namespace tenon::serde {
namespace {

constexpr std::string_view flat_program = "serialized_exported_program.json";

std::string_view name_of(PayloadFolder folder) {
  switch (folder) {
    case PayloadFolder::weights: return "weights";
    case PayloadFolder::constants: return "constants";
  }
  unreachable();
}

}  // namespace

std::shared_ptr<const Archive> Archive::open(const std::string& path, std::string_view model) {
  auto file = MappedFile::open(path);
  require(looks_like_zip(file->bytes()), path,
          ": expected a .pt2 file written by torch.export.save, which is a zip archive; this ", "file is not one");
  auto budget = std::make_unique<Budget>(path, file->bytes().size());
  ZipArchive zip(file->bytes(), path, {.budget = budget.get()});
  std::shared_ptr<Archive> archive(new Archive(std::move(file), std::move(budget), std::move(zip)));
  if (archive->zip_.find(flat_program)) archive->check_flat(model);
  else archive->check_container(model);
  return archive;
}

void Archive::check_flat(std::string_view model) {
  container_ = Container::flat;
  model_ = "model";
  require(model.empty() || model == model_, path(), ": there is no model ", quoted(model),
          "; a file of this format holds one, called model");
  const ZipEntry* version = zip_.find("version");
  require(version, path(), ": the entry 'version' is missing");
  std::vector<std::string> numbers = split(trim(zip_.content(*version)), '.');
  bool good = numbers.size() == 2;
  for (const std::string& number : numbers)
    good = good && !number.empty() && number.size() <= 4 && number.find_first_not_of("0123456789") == number.npos;
  require(good, path(), ": expected a schema version such as 8.2 in the entry 'version', found ",
          quoted(zip_.content(*version)));
}

void Archive::check_container(std::string_view model) {
  require(!zip_.entries().empty(), path(), ": the archive is empty");
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
  choose_model(model);
  bool pickled =
      find(text("data/weights/", model_, ".pt")) && !find(text("data/weights/", model_, "_weights_config.json"));
  container_ = pickled ? Container::pickled : Container::raw;
}

void Archive::choose_model(std::string_view wanted) {
  std::vector<std::string> models;
  for (const std::string& name : names_in("models/"))
    if (ends_with(name, ".json")) models.push_back(name.substr(0, name.size() - 5));
  auto named = [&](std::string_view name) { return std::find(models.begin(), models.end(), name) != models.end(); };
  auto list = [&] {
    std::vector<std::string> out;
    for (size_t i = 0; i < models.size() && i < 10; ++i) out.push_back(quoted(models[i]));
    return text(join(out, ", "), models.size() > 10 ? ", ..." : "");
  };
  require(!models.empty(), path(), ": the archive holds no exported program (models/model.json)",
          find("data/aotinductor") || !names_in("data/aotinductor/").empty()
              ? "; it is a package compiled by AOTInductor, which only PyTorch can run"
              : "");
  if (!wanted.empty()) {
    require(named(wanted), path(), ": there is no model ", quoted(wanted), "; the file holds ", list());
    model_ = wanted;
  } else if (named("model")) {
    model_ = "model";
  } else {
    require(models.size() == 1, path(), ": the file holds ", models.size(),
            " models, none of them called model: ", list(), "; choose one with --model NAME");
    model_ = models[0];
  }
}

std::string Archive::program_entry() const {
  return container_ == Container::flat ? std::string(flat_program) : text("models/", model_, ".json");
}

std::string Archive::samples_entry() const {
  return container_ == Container::flat ? "serialized_example_inputs.pt" : text("data/sample_inputs/", model_, ".pt");
}

std::string Archive::pickled_entry(PayloadFolder folder) const {
  if (container_ != Container::flat) return text("data/", name_of(folder), "/", model_, ".pt");
  std::string stem = folder == PayloadFolder::weights ? "serialized_state_dict" : "serialized_constants";
  // Before 2.4 these had the ending of JSON, with the same content.
  return !find(stem + ".pt") && find(stem + ".json") ? stem + ".json" : stem + ".pt";
}

std::string_view Archive::extra_folder() const { return container_ == Container::flat ? "extra_files/" : "extra/"; }

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
