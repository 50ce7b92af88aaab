# What `cmake --install` puts in place: the program, the library with its public headers, and a
# package, so that `find_package(fourpiles)` gives another project fourpiles::fourpiles.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY FOURPILES_LIBRARIES)
add_library(fourpiles_all INTERFACE)
set_target_properties(fourpiles_all PROPERTIES EXPORT_NAME fourpiles)
target_link_libraries(fourpiles_all INTERFACE ${libraries})
target_compile_features(fourpiles_all INTERFACE cxx_std_20)  # a consumer needs no flag for it
add_custom_target(installed DEPENDS fourpiles ${libraries})  # what ./run builds: all that is installed

install(TARGETS fourpiles_all ${libraries} EXPORT fourpiles-targets
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fourpiles
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS fourpiles)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fourpiles)
install(EXPORT fourpiles-targets NAMESPACE fourpiles:: DESTINATION ${package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/fourpiles-config.cmake.in ${PROJECT_BINARY_DIR}/fourpiles-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/fourpiles-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fourpiles-config.cmake
              ${PROJECT_BINARY_DIR}/fourpiles-config-version.cmake
        DESTINATION ${package_dir})
