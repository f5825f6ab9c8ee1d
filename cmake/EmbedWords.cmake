# cmake -DINPUT=module.spv -DOUTPUT=module.inc -P EmbedWords.cmake: little-endian 32-bit words as C++ literals.
file(READ "${INPUT}" text HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," text "${text}")
string(REGEX REPLACE "(0x........,0x........,0x........,0x........,0x........,0x........,0x........,0x........,)" "\\1\n"
       text "${text}")
file(WRITE "${OUTPUT}" "${text}\n")
