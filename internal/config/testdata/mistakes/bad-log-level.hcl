log_level = "warning"
