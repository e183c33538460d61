# A digest of sources and of what they are built with, as C: what the key of a cache entry begins with.
# cmake -DSOURCES=a;b -DBUILT_WITH=text -DOUT=out.c -P build_id.cmake
set(all "${BUILT_WITH}")
foreach(source ${SOURCES})
  file(SHA256 ${source} digest)
  get_filename_component(name ${source} NAME)
  string(APPEND all " ${name} ${digest}")
endforeach()
string(SHA256 id "${all}")
file(WRITE ${OUT} "/* Made by build_id.cmake. */\n#include \"driver/cache/key.h\"\n\nconst char build_id[] = \"${id}\";\n")
