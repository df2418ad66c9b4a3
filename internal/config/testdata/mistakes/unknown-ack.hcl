ack = "eventually"
