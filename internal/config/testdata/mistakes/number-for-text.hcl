listen = 8420
