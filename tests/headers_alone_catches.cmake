# The check of the headers must fail on one that does not compile alone and on one that pulls in a third-party header,
# also through another one: a check that cannot fail proves nothing.
file(REMOVE_RECURSE ${SCRATCH})
set(tree ${SCRATCH}/tree)
file(WRITE ${tree}/array/good.h "#pragma once\n#include <vector>\nstd::vector<int> good();\n")
file(WRITE ${tree}/array/lame.h "#pragma once\nstd::vector<int> lame();\n")
file(WRITE ${tree}/ops/heavy.h "#pragma once\n#include <fmt/core.h>\n")
file(WRITE ${tree}/ops/hidden.h "#pragma once\n#include <forebay/ops/heavy.h>\n")
file(WRITE ${tree}/ops/hidden.cpp "#include <forebay/ops/hidden.h>\n")
file(MAKE_DIRECTORY ${SCRATCH}/include)
file(CREATE_LINK ${tree} ${SCRATCH}/include/forebay SYMBOLIC)
execute_process(COMMAND ${CMAKE_COMMAND} -DCOMPILER=${COMPILER} -DINCLUDE=${SCRATCH}/include -DROOT=${tree} -DLEAST=4
                        -DSCRATCH=${SCRATCH} -P ${CHECK} RESULT_VARIABLE result ERROR_VARIABLE error)
foreach(expected IN ITEMS "array/lame.h does not compile alone" "ops/heavy.h pulls in a third-party header"
                          "ops/hidden.h pulls in a third-party header")
  if(result EQUAL 0 OR NOT error MATCHES "${expected}")
    message(FATAL_ERROR "headers_alone.cmake did not say that ${expected}: ${error}")
  endif()
endforeach()
if(error MATCHES "good.h")
  message(FATAL_ERROR "headers_alone.cmake found fault with a good header: ${error}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
