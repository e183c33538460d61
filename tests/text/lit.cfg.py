# Text tests: what the command prints, line by line, each program with its expectations in comments.
import lit.formats

config.name = "texo"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".tex"]
config.test_source_root = lit_config.params["source"]
config.test_exec_root = lit_config.params["output"]
config.substitutions.append(("%texo", lit_config.params["texo"]))
config.substitutions.append(("%FileCheck", lit_config.params["filecheck"]))
