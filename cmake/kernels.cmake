# How kernels are compiled and linked (kernels/CMakeLists.txt, and tests of what is refused).
set(kernel_targets portable v3 v4)   # in the order of enum tenon_target
set(kernel_march_portable x86-64)
set(kernel_march_v3 x86-64-v3)
set(kernel_march_v4 x86-64-v4)
# No tenon_flags: kernels have flags of their own, and no sanitizer looks into them.
set(kernel_flags ${tenon_warnings} -O3 -g0 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-stack-protector
  -fno-sanitize=all -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-threadsafe-statics -ffp-contract=off
  -fwrapv -fno-math-errno -fno-trapping-math -fno-strict-aliasing -ffreestanding -fcf-protection=full -U_FORTIFY_SOURCE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND kernel_flags -fno-semantic-interposition)
endif()

find_program(kernel_linker NAMES ld.bfd ld ld.lld REQUIRED)   # binutils

function(tenon_kernel_objects name target)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_compile_options(${name} PRIVATE ${kernel_flags} -march=${kernel_march_${target}} -mtune=generic)
  target_compile_definitions(${name} PRIVATE TENON_TARGET=${target})
endfunction()

# The linked family as an ELF file with its relocations kept, for make_images to judge: variable `out` holds its path.
function(tenon_link_kernels out family target)
  tenon_kernel_objects(kernels_${family}_${target} ${target} ${ARGN})
  add_dependencies(kernels_${family}_${target} kernel_math)
  set(linked ${CMAKE_CURRENT_BINARY_DIR}/${family}.${target}.elf)
  add_custom_command(OUTPUT ${linked}
    COMMAND ${kernel_linker} -m elf_x86_64 -nostdlib -static --emit-relocs --build-id=none -z noexecstack
      --unresolved-symbols=ignore-all -e 0 -T ${PROJECT_SOURCE_DIR}/kernels/image.ld -o ${linked}
      $<TARGET_OBJECTS:kernels_${family}_${target}> $<TARGET_FILE:kernel_support_${target}>
    DEPENDS $<TARGET_OBJECTS:kernels_${family}_${target}> kernel_support_${target} ${PROJECT_SOURCE_DIR}/kernels/image.ld
    COMMAND_EXPAND_LISTS VERBATIM)
  set(${out} ${linked} PARENT_SCOPE)
endfunction()
