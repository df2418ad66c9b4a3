retention = "1y"
