ack = "local"
ack = "journaled"
