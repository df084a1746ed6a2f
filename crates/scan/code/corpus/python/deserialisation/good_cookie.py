import base64, json

def load_session(request):
    return json.loads(base64.b64decode(request.cookies["session"]))
