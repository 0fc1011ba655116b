"""The pages, by subject. A page asks the store; its template shows the answer."""
