# The program in the README is the tested example's, to the letter.
file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/embed/train.cpp example)
string(REGEX MATCH "// \\[embed\\]\n(.*)// \\[/embed\\]" found "${example}")
string(FIND "${readme}" "```cpp\n${CMAKE_MATCH_1}```" position)
if(NOT found OR position EQUAL -1)
  message(FATAL_ERROR "README.md does not quote the region embed of examples/embed/train.cpp; copy it there")
endif()
