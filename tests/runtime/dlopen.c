/* Opens a shared object with the dynamic linker and looks up one symbol. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* handle = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!handle || !dlsym(handle, argv[2])) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return dlclose(handle);
}
