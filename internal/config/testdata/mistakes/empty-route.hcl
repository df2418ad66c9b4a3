route = []
