route = ["local", 2]
