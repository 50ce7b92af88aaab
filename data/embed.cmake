# How the records become part of a library: fourpiles_embed(TARGET FUNCTION FILES …).
#
# Adds `std::span<const DataFile> FUNCTION()` (model/data_file.h) to TARGET: the text of each file,
# in the order given. A record changed or added configures the build again (a folder changes when a
# file in it comes or goes); nothing is read at run time.

function(fourpiles_embed target function)
  set(DATA_FUNCTION ${function})
  set(DATA_FILES "")
  foreach(file ${ARGN})
    file(READ ${file} text)
    string(LENGTH "${text}" length)
    if(length GREATER 60000 OR text MATCHES "\\)json\"")
      message(FATAL_ERROR "${file}: does not fit a raw string of 60000 bytes")  # C++20 [implimits]
    endif()
    cmake_path(GET file STEM LAST_ONLY name)
    cmake_path(GET file PARENT_PATH folder)
    list(APPEND folders ${folder})
    string(APPEND DATA_FILES "    {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/data/data_files.cc.in ${output} @ONLY)
  list(REMOVE_DUPLICATES folders)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN} ${folders})
  target_sources(${target} PRIVATE ${output})
endfunction()
