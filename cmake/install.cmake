# One libtenon, static and shared, made of the objects of every folder, and how users find it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)
get_property(tenon_parts GLOBAL PROPERTY TENON_PARTS)
# Precompiled headers count as objects of a target, too.
list(TRANSFORM tenon_parts REPLACE "(.+)" "$<FILTER:$<TARGET_OBJECTS:\\1>,EXCLUDE,[.][gp]ch$>" OUTPUT_VARIABLE tenon_objects)
list(APPEND tenon_objects $<TARGET_OBJECTS:tenon_runtime>)   # compiled programs run in it

# The archive is one object in which only the interface is global: whatever else the folders call each other by cannot meet a name of
# the program it is linked into.
set(tenon_archived ${PROJECT_BINARY_DIR}/lib/tenon_archived.o)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
add_custom_command(OUTPUT ${tenon_archived}
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${tenon_archived} ${tenon_objects}
  COMMAND ${PROJECT_SOURCE_DIR}/cmake/hide_symbols.sh ${CMAKE_NM} ${CMAKE_OBJCOPY} ${tenon_archived}
  DEPENDS ${tenon_objects} ${tenon_parts} ${PROJECT_SOURCE_DIR}/cmake/hide_symbols.sh COMMAND_EXPAND_LISTS VERBATIM COMMENT "Hiding what is not the interface of libtenon.a")

function(tenon_library target kind)
  add_library(${target} ${kind} ${ARGN})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME tenon
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} PRIVATE Threads::Threads ZLIB::ZLIB)
  add_library(Tenon::${target} ALIAS ${target})
endfunction()

find_package(ZLIB REQUIRED)
tenon_library(tenon_static STATIC ${tenon_archived})
tenon_library(tenon_shared SHARED ${tenon_objects})
set_target_properties(tenon_shared PROPERTIES EXPORT_NAME tenon VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
target_link_options(tenon_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map)
add_library(Tenon::tenon ALIAS tenon_shared)

set(tenon_package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
install(TARGETS tenon_static tenon_shared EXPORT Tenon COMPONENT library)
install(TARGETS tenon COMPONENT tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenon ${PROJECT_BINARY_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT library FILES_MATCHING PATTERN "*.h")
install(EXPORT Tenon NAMESPACE Tenon:: FILE TenonTargets.cmake DESTINATION ${tenon_package} COMPONENT library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
  INSTALL_DESTINATION ${tenon_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake DESTINATION ${tenon_package}
  COMPONENT library)
file(RELATIVE_PATH TENON_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tenon.pc.in ${PROJECT_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
