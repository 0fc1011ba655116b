"""What each page needs of the store. A page asks; its template shows."""
