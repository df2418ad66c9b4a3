route = "local"
