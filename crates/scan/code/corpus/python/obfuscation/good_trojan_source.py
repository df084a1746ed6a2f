def is_admin(role):
    # Only admins; names may be in any alphabet: שלום
    return role == "admin"
