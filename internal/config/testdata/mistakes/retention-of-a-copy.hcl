backend "sqlite" "local" {
  local     = true
  retention = "720h"
}

backend "beacon" "beacon" {
  retention = "2160h"
}

backend "sqlite" "mirror" {
  retention = "90d"
}

backend "sqlite" "reports" {
  retention = "-1h"
}
