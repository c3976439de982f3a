if(RANKRUN_SANITIZE)
  add_compile_options(-fsanitize=${RANKRUN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RANKRUN_SANITIZE})
endif()
