# MLX's library, headers and CMake files come from the wheels in .venv (tools/setup).
set(LINNET_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "The Python whose MLX is used")
execute_process(COMMAND ${LINNET_PYTHON} -m mlx --cmake-dir
  OUTPUT_VARIABLE LINNET_MLX_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${LINNET_PYTHON} has no MLX: run tools/setup")
endif()
find_package(MLX CONFIG REQUIRED PATHS ${LINNET_MLX_ROOT} NO_DEFAULT_PATH)
# Its headers are not held to our warnings.
set_target_properties(mlx PROPERTIES
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "$<TARGET_PROPERTY:mlx,INTERFACE_INCLUDE_DIRECTORIES>")
