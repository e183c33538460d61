# Writes the bytes of IN as the C array std_text to OUT.
file(READ ${IN} hex HEX)
string(LENGTH "${hex}" n)
math(EXPR n "${n} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include \"frontend/frontend.h\"\nconst char std_text[] = {${bytes}0};\nconst unsigned std_text_size = ${n};\n")
