import base64

greeting = "SGVsbG8sIHRoaXMgaXMgYSBmcmllbmRseSBncmVldGluZyBmcm9tIHRoZSB0ZXN0cy4="
print(base64.b64decode(greeting).decode())
