"""One module per state or event of the state machine, of the same name as its folder in
lambdas/.
"""
