ack    = "locl"
listen = 1
retention = "soon"
backend "sqlite" "local" {
  local = "certainly"
}
