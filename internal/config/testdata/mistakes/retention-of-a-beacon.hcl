backend "sqlite" "local" {
  local = true
}

backend "beacon" "beacon" {
  retention = "2160h"
}
