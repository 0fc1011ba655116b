"""The second set of stories: the channels of the first, other ways, written blind by another writer after the audit's
rules had been mended on the first set. `tasks/` has tasks that only this set uses, beside all of the first set's."""
