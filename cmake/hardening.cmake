# Checks of the compiler and the linker that turn many memory faults into an
# immediate end: docs/security.md has their cost. Sanitizers check more. PIE is
# g++'s default, and all code is position-independent (precompiled.cmake).
if(NOT RANKRUN_SANITIZE)
  set(optimized $<CONFIG:RelWithDebInfo,Release,MinSizeRel>)  # _FORTIFY_SOURCE needs -O
  add_compile_options($<${optimized}:-U_FORTIFY_SOURCE>
    $<${optimized}:-D_FORTIFY_SOURCE=3> -fstack-protector-strong)
  add_compile_definitions($<${optimized}:_GLIBCXX_ASSERTIONS>)
  add_link_options(LINKER:-z,relro,-z,now)
  # For shared libraries, which clang leaves without the sanitizers' functions.
  set(rankrun_all_defined LINKER:--no-undefined)
endif()
