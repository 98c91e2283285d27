# cmake -DNM=nm -DOBJECTS="a.o b.o" -P levels_apart.cmake: no object file for one level of the processor defines a
# function that the linker may take for other levels too (an inline function that was not inlined).
separate_arguments(OBJECTS)
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" shared "${symbols}")
  if(shared)
    message(FATAL_ERROR "${object} shares with code for other processors:\n${shared}")
  endif()
endforeach()
