# Writes SCRIPT, STYLE and SHELL as byte arrays, and the digests of the first two, into OUTPUT.
function(embed name path)
    file(READ ${path} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
    string(APPEND code "constexpr char k_${name}[] = {${bytes}'\\0'};\n")
    string(APPEND accessors "std::string_view page_${name}() { return {k_${name}, ${size}}; }\n")
    file(SHA256 ${path} digest)
    string(REGEX REPLACE "(..)" "0x\\1," digest "${digest}")
    if(NOT name STREQUAL "shell")
        string(APPEND accessors
            "std::array<std::uint8_t, 32> page_${name}_sha256() { return {${digest}}; }\n")
    endif()
    set(code "${code}" PARENT_SCOPE)
    set(accessors "${accessors}" PARENT_SCOPE)
endfunction()

embed(script ${SCRIPT})
embed(style ${STYLE})
embed(shell ${SHELL})
file(WRITE ${OUTPUT}
    "// Generated from viewer/ by embed.cmake.\n#include \"analyzer/report/page/page_assets.h\"\n\n"
    "namespace fragtrace::analyzer {\nnamespace {\n${code}}  // namespace\n\n${accessors}"
    "}  // namespace fragtrace::analyzer\n")
