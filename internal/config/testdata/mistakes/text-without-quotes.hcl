ack = local
