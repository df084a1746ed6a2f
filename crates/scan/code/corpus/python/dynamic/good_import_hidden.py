import json

module = json
print(module.dumps({"id": 1}))
