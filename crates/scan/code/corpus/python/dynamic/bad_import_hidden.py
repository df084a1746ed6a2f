module = __import__("sub" + "process")
module.call(["id"])
