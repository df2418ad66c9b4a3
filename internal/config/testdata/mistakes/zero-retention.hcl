retention = "0s"
