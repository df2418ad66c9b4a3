colour = "blue"
