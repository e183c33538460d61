# The examples and the standard library are laid out.
file(GLOB files ${ROOT}/examples/*.tex ${ROOT}/frontend/*.tex)
execute_process(COMMAND ${TEXO} fmt --check ${files} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code EQUAL 0 OR NOT out STREQUAL "" OR NOT err STREQUAL "" OR files STREQUAL "")
  message(FATAL_ERROR "texo fmt --check: ${code}\n${out}${err}")
endif()
