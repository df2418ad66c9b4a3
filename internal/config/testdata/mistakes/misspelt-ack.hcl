ack = "journalled"
