package peer;

/** A row of the input and of the output. */
public class Person {
    private long id;
    private String first;
    private String last;
    private String email;
    private double amount;
    private String date;

    /** Returns the row of a number, as it is in the input. */
    static Person number(long id) {
        return of(id, "First" + id, "Last" + id, "first" + id + ".last" + id + "@example.com", (id % 100_000) / 100.0,
                String.format("2026-11-%02d", id % 28 + 1));
    }

    static Person of(long id, String first, String last, String email, double amount, String date) {
        Person person = new Person();
        person.id = id;
        person.first = first;
        person.last = last;
        person.email = email;
        person.amount = amount;
        person.date = date;
        return person;
    }

    /** The work of every processor. */
    Person processed() {
        return of(id, first, last.toUpperCase(java.util.Locale.ROOT), email, Math.round(amount * 110.0) / 100.0, date);
    }

    public long getId() {
        return id;
    }

    public String getFirst() {
        return first;
    }

    public String getLast() {
        return last;
    }

    public String getEmail() {
        return email;
    }

    public double getAmount() {
        return amount;
    }

    public String getDate() {
        return date;
    }
}
