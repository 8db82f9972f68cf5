// "adamw,lr=1e-3,betas=(0.9,0.99)": a name and keyword arguments, as the command line has them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon::train {

/// Reads keyword arguments one by one; done() refuses those that nobody asked for. Errors quote the text and say what
/// was expected.
class Settings {
 public:
  /// `what` names the subject in messages: "optimizer".
  Settings(std::string what, std::string_view text);
  const std::string& name() const { return name_; }
  double number(const std::string& key, double otherwise);
  double positive(const std::string& key, double otherwise);  // or 0
  int64_t count(const std::string& key, int64_t otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::vector<double> numbers(const std::string& key, std::vector<double> otherwise);  // (0.9,0.999)
  bool has(const std::string& key) const;
  void done() const;
  [[noreturn]] void unknown_name(std::string_view expected) const;

 private:
  struct Argument {
    std::string key, value;
    bool read = false;
  };
  Argument* find(const std::string& key);
  std::string what_, text_, name_;
  std::vector<Argument> arguments_;
  std::vector<std::string> known_;
};

}  // namespace tenon::train
