data    = "data"
lissten = "127.0.0.1:8420"
