production = "yes"
