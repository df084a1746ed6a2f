import base64, pickle

def load_session(request):
    return pickle.loads(base64.b64decode(request.cookies["session"]))
