prodution = true
