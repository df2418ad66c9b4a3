log_json = "yes"
